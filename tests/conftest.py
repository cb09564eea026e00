"""For all tests: Ctrl-C works, however they were started."""

import contextlib
import signal

# What a shell starts in the background ignores Ctrl-C, and so does everything that it starts in turn; the tests of
# Ctrl-C would then wait for what can't come. (Python's own handler is not passed on, so children get the default.)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
