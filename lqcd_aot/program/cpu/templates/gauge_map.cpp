// Purpose: entry points of kind `gauge_map`: new links from links.
// Owns: the integrator and the smearing step. Refuses to know: how many steps are taken.
//
// With Z_mu(x) = -P(U_mu(x) C_mu(x)^dagger), C the staples, P the projection on traceless anti-Hermitian matrices:
//   wilson_flow_step  one third-order Runge-Kutta step of size e = scalars[0] of dV/dt = Z(V) V (M. Luescher, JHEP 08 (2010) 071):
//                     W1 = exp(e Z0/4) V, W2 = exp(e (8/9 Z1 - 17/36 Z0)) W1, V' = exp(e (3/4 Z2 - 8/9 Z1 + 17/36 Z0)) W2
//   stout_smear       U' = exp(rho Z) U, rho = scalars[0], all directions alike (C. Morningstar, M. Peardon, PRD 69 (2004) 054501)
//
// Arithmetic in the type of the links. Output may be the input array. Links stay unitary to rounding and are not projected back.
#include "gauge_exp.hpp"
#include "gauge_loops.hpp"

namespace lqcd {
namespace {

using R = LQCD_REAL;
using L = Loops<R>;

// One stage for every link: m <- a Z(from) + b m, then to = exp(c m) from. b = 0: m is written, never read.
void stage(R* to, R* m, const R* from, R a, R b, R c, lqcd_pool* pool) {
  parallel_for(pool, kRows, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
#pragma GCC unroll 1
      for (int x = 0; x < LQCD_X; x += L::kLanes) {
        const Site here = site_of_row(row, x);
        for (int mu = 0; mu < 4; ++mu) {
          const L::M u = L::load(from, here, mu);
          L::M z = project_algebra(times_dagger(u, L::staples(from, here, mu)), -a);
          if (b != R(0)) {
            const L::M before = L::load(m, here, mu);
            for (int i = 0; i < 9; ++i) {
              z.re[i] += b * before.re[i];
              z.im[i] += b * before.im[i];
            }
          }
          L::store(m, here, mu, z);
          for (int i = 0; i < 9; ++i) {
            z.re[i] *= c;
            z.im[i] *= c;
          }
          L::store(to, here, mu, exponential<L, R>(z) * u);
        }
      }
      L::close_row(to, row);
    }
  });
}

}  // namespace
}  // namespace lqcd

// Two copies of the field, because a stage reads neighbours of what it writes, and the combination of forces.
uint64_t lqcd_bytes(int32_t what) { return what == lqcd::kWorkspace ? 3 * lqcd::L::kBytes : 0; }

int32_t lqcd_map(void* links_out, const void* links_in, const double* scalars, void* work, lqcd_pool* pool) {
  using namespace lqcd;
  if (!links_out || !links_in || !scalars || !work) return kBadArgument;
  auto* bytes = static_cast<char*>(work);
  auto* u = reinterpret_cast<R*>(bytes);
  auto* v = reinterpret_cast<R*>(bytes + L::kBytes);
  auto* m = reinterpret_cast<R*>(bytes + 2 * L::kBytes);
  const double size = scalars[0];
  L::pack(u, static_cast<const Link*>(links_in), pool);
#if defined(LQCD_OPERATOR_wilson_flow_step)
  stage(v, m, u, R(size), R(0), R(0.25), pool);
  stage(u, m, v, R(size * 8.0 / 9.0), R(-17.0 / 36.0), R(1), pool);
  stage(v, m, u, R(size * 0.75), R(-1), R(1), pool);
#elif defined(LQCD_OPERATOR_stout_smear)
  stage(v, m, u, R(size), R(0), R(1), pool);
#else
#error "no gauge map is chosen: define LQCD_OPERATOR_<name>"
#endif
  L::unpack(static_cast<Link*>(links_out), v, pool);
  return kOk;
}
