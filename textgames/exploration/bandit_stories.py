"""What the arms of a bandit are called: four stories around the same problem.

The stories are those of EVOLvE (arXiv 2410.06238) in words and names of our own. Names say nothing about the means,
which are drawn anew in every episode.
"""

from typing import NamedTuple


class Story(NamedTuple):
    """One story.

    Attributes:
        scene: what the player is and what it chooses every round; two sentences.
        thing: what an arm is: ``"button"``.
        chosen: what is done to it: ``"pressed"``.
        success: when the reward is 1 and not 0, as part of a sentence: ``"it lights up"``.
        names: of the arms, the actions; as many as there can be arms, separated by spaces.
    """

    scene: str
    thing: str
    chosen: str
    success: str
    names: str


STORIES: dict[str, Story] = {
    "buttons": Story(
        "You stand before a panel of coloured buttons. In every round you press one of them.",
        "button",
        "pressed",
        "it lights up",
        "red blue green yellow purple orange pink brown black white "
        "gray cyan gold silver lime navy teal maroon olive violet",
    ),
    "ads": Story(
        "You run the advertising of a web page. In every round a visitor comes and you show one banner.",
        "banner",
        "shown",
        "the visitor clicks on it",
        "bicycle coffee headphones tent piano sneakers camera teapot umbrella backpack "
        "lamp guitar watch sofa kettle drone blender skateboard novel perfume",
    ),
    "videos": Story(
        "You recommend videos on a web site. In every round a visitor comes and you recommend one video.",
        "video",
        "recommended",
        "the visitor watches it to the end",
        "cooking travel chess gardening astronomy pottery surfing history robotics sailing "
        "magic knitting volcanoes trains opera beekeeping climbing origami penguins carpentry",
    ),
    "clothes": Story(
        "You advise the customers of a fashion shop. In every round a customer comes and you suggest one garment.",
        "garment",
        "suggested",
        "the customer buys it",
        "scarf jacket sweater jeans dress coat skirt shirt hat gloves "
        "boots sandals cardigan blazer hoodie vest shorts belt raincoat kimono",
    ),
}

MOST_ARMS = min(len(story.names.split()) for story in STORIES.values())
