from .bandit import Bandit as Bandit
from .bandit import Evidence as Evidence
from .bandit import exploration_bonuses as exploration_bonuses
from .bandit import read_evidence as read_evidence
from .guess_number import GuessNumber as GuessNumber
from .guessing import LOST_GUESSES as LOST_GUESSES
