"""Every hot loop of the package, and nothing but loops.

All of them release the GIL and are plain sequential code, so threads may run them side by side. What they compute does
not depend on the threads, down to the last bit.
"""
