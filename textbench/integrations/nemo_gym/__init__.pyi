from .server import TextbenchConfig as TextbenchConfig
from .server import TextbenchServer as TextbenchServer
