"""At which level of a ladder is a player? ``fit`` finds it from episodes, ``rows`` makes the tables of it."""
