"""One HTML page about a store: what is built, how large, how long it took, what was hit, what failed.

    gather.py    the facts, from records, failures, divergences and the logs of builds
    document.py  the frame of a page, tables; shared with lqcd_aot.bench
    svg.py       bars, a histogram and the map of the matrix as inline SVG
    page.py      the page
    style.css    how it looks, light and dark

Nothing outside the page is referred to, and every text in it is escaped: names and compiler logs are not to be trusted as HTML.
"""

from lqcd_aot.report.gather import Facts as Facts
from lqcd_aot.report.gather import gather as gather
from lqcd_aot.report.page import page as page

__all__ = ["Facts", "gather", "page"]
