import sys

from places import ROOT

sys.path.append(str(ROOT))  # `studies` is no part of the installed package
