// Purpose: artifact of clover_cg and clover_bicgstab: a solver of the full clover system.
// Owns: the choice of operator and algorithm. Refuses to know: everything else.
#include "clover_operators.hpp"
#include "solver_full.hpp"
#include "solver_method.hpp"
#include "solver_entry.hpp"
