from .shrinking import shrink as shrink
