"""Reports: what people look at. The page is in ``html``, figures in ``plots``, tables of the terminal in ``text``."""
