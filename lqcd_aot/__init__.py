"""Build side and SDK of lqcd-aot: recipes, programs, compilers, store, bundles, and the torch modules behind each operator.

Importing this package loads nothing else; import the subpackage you need (`lqcd_aot.core`, `lqcd_aot.dirac`, ...).
"""
