"""How the structure of the code is measured while it is redesigned: walks of one value, and gates that must hold."""
