import sys

from places import ROOT

sys.path.append(str(ROOT))  # `benchmarks` is no part of the installed package
