// Purpose: artifact of clover_schur_cg and clover_schur_bicgstab: a solver of the even-odd clover system.
// Owns: the choice of operator and algorithm. Refuses to know: everything else.
#include "clover_schur_operators.hpp"
#include "solver_even_odd.hpp"
#include "solver_method.hpp"
#include "solver_entry.hpp"
