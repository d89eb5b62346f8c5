// Purpose: closed and open loops of links around one site: plaquette, staples, clover field strength.
// Owns: their formulas. Refuses to know: what is averaged or integrated with them.
#pragma once

#include "gauge_lattice.hpp"

namespace lqcd {

// Planes in the order TZ, TY, TX, ZY, ZX, YX.
inline constexpr int kPlanes = 6;
inline constexpr int kPlane[kPlanes][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

template <class R>
struct Loops : Work<R> {
  using W = Work<R>;
  using typename W::M;
  using typename W::V;
  using W::load;

  // Re tr U_mu(x) U_nu(x+mu) U_mu(x+nu)^dagger U_nu(x)^dagger
  static LQCD_INLINE V real_trace_plaquette(const R* u, const Site& x, int mu, int nu) {
    const M there = load(u, x, mu) * load(u, x.shifted(mu, 1), nu);
    const M back = load(u, x, nu) * load(u, x.shifted(nu, 1), mu);
    return real_trace_times_dagger(there, back);
  }

  // C_mu(x) = sum_{nu != mu} U_nu(x) U_mu(x+nu) U_nu(x+mu)^dagger + U_nu(x-nu)^dagger U_mu(x-nu) U_nu(x-nu+mu)
  static LQCD_INLINE M staples(const R* u, const Site& x, int mu) {
    M sum{};
    for (int nu = 0; nu < 4; ++nu) {
      if (nu == mu) continue;
      const Site below = x.shifted(nu, -1);
      sum.add(times_dagger(load(u, x, nu) * load(u, x.shifted(nu, 1), mu), load(u, x.shifted(mu, 1), nu)));
      sum.add(dagger_times(load(u, below, nu), load(u, below, mu) * load(u, below.shifted(mu, 1), nu)));
    }
    return sum;
  }

  // F = (Q - Q^dagger)/8 without its trace; Q = the four plaquettes that begin and end at x and turn from mu to nu.
  static LQCD_INLINE M field_strength(const R* u, const Site& x, int mu, int nu) {
    const Site left = x.shifted(mu, -1), below = x.shifted(nu, -1), both = left.shifted(nu, -1);
    const M u_mu = load(u, x, mu), u_nu = load(u, x, nu), u_left = load(u, left, mu), u_below = load(u, below, nu);
    M q = times_dagger(u_mu * load(u, x.shifted(mu, 1), nu), u_nu * load(u, x.shifted(nu, 1), mu));
    q.add(times_dagger(u_nu, load(u, left, nu) * load(u, left.shifted(nu, 1), mu)) * u_left);
    q.add(dagger_times(load(u, both, nu) * u_left, load(u, both, mu) * u_below));
    q.add(times_dagger(dagger_times(u_below, load(u, below, mu) * load(u, below.shifted(mu, 1), nu)), u_mu));
    return project_algebra(q, R(0.25));
  }
};

}  // namespace lqcd
