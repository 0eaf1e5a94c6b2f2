"""python -m certiseg: the same as the command certiseg."""

from certiseg.cli import main

raise SystemExit(main())
