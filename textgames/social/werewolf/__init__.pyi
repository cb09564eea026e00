from .game import SILENCE as SILENCE
from .game import Werewolf as Werewolf
from .rules import NOBODY as NOBODY
from .rules import SEER as SEER
from .rules import WOLF as WOLF
from .rules import Phase as Phase
from .rules import WerewolfState as WerewolfState
