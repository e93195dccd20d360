import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent))  # `studies` is no part of the installed package
