// Purpose: entry points of kind `observable`: a few float64 numbers of a gauge field.
// Owns: normalisations and the order of the results. Refuses to know: fermion boundary phases, file formats.
//
//   plaquette           per plane TZ TY TX ZY ZX YX: average of Re tr P / 3
//   wilson_action       beta sum_{x, mu<nu} (1 - Re tr P / 3);  scalars[0] = beta
//   polyakov_loop       per direction T Z Y X, (re, im): average of tr prod_k U_mu(x + k mu) / 3
//   topological_charge  sum_x -1/(32 pi^2) eps tr F F, eps_xyzt = +1, clover F without trace
//                       = -1/(4 pi^2) sum_x tr(F_TZ F_YX - F_TY F_ZX + F_TX F_ZY): each term stands for eight
//   energy_density      average of -sum_{mu<nu} tr F^2, which is G^a G^a / 4 for F = G^a T^a with tr T^a T^b = -1/2 delta_ab
//
// Arithmetic and sums are float64 for links of either type. The order of a sum depends on the lattice only.
#include "gauge_loops.hpp"

namespace lqcd {
namespace {

using L = Loops<double>;
using V = L::V;
inline constexpr int64_t kBlock = 8;  // rows, or lines of links, in one partial sum
inline constexpr uint64_t kPartialBytes = sizeof(double) * kPlanes * ((kSites + kBlock - 1) / kBlock);

struct Workspace {
  double* field;
  double* partials;
};

inline Workspace workspace_of(void* work) {
  auto* bytes = static_cast<char*>(work);
  return {reinterpret_cast<double*>(bytes), reinterpret_cast<double*>(bytes + L::kBytes)};
}

// Sums per_site(site, add) over the lattice, K numbers at once; add(k, v) takes a vector over the sites of a step.
template <int K, class PerSite>
inline void sum_sites(lqcd_pool* pool, double* partials, double (&sums)[K], const PerSite& per_site) {
  reduce<K>(pool, kRows, kBlock, partials, sums, [&](int64_t first, int64_t last, double(&sum)[K]) {
    for (int64_t row = first; row < last; ++row)
#pragma GCC unroll 1
      for (int x = 0; x < LQCD_X; x += L::kLanes)
        per_site(site_of_row(row, x), [&](int k, const V& v) { L::add_sites(sum[k], v, x); });
  });
}

[[maybe_unused]] void plaquette(double* results, const Workspace& w, lqcd_pool* pool) {
  double sums[kPlanes];
  sum_sites<kPlanes>(pool, w.partials, sums, [&](const Site& x, auto add) {
    for (int p = 0; p < kPlanes; ++p) add(p, L::real_trace_plaquette(w.field, x, kPlane[p][0], kPlane[p][1]));
  });
  for (int p = 0; p < kPlanes; ++p) results[p] = sums[p] / (3.0 * double(kSites));
}

// 3 - Re tr P is formed per plaquette: near the cold field the difference of two large sums would lose digits.
[[maybe_unused]] void wilson_action(double* results, const Workspace& w, double beta, lqcd_pool* pool) {
  double sums[1];
  sum_sites<1>(pool, w.partials, sums, [&](const Site& x, auto add) {
    for (int p = 0; p < kPlanes; ++p)
      add(0, 3.0 - L::real_trace_plaquette(w.field, x, kPlane[p][0], kPlane[p][1]));
  });
  results[0] = beta * sums[0] / 3.0;
}

[[maybe_unused]] void topological_charge(double* results, const Workspace& w, lqcd_pool* pool) {
  constexpr double kFourPiSquared = 39.478417604357434475;
  double sums[1];
  sum_sites<1>(pool, w.partials, sums, [&](const Site& x, auto add) {
    L::M f[kPlanes];
    for (int p = 0; p < kPlanes; ++p) f[p] = L::field_strength(w.field, x, kPlane[p][0], kPlane[p][1]);
    // F^dagger = -F, so these are minus the traces tr F F of the formula.
    add(0, real_trace_times_dagger(f[0], f[5]) - real_trace_times_dagger(f[1], f[4]) + real_trace_times_dagger(f[2], f[3]));
  });
  results[0] = sums[0] / kFourPiSquared;
}

[[maybe_unused]] void energy_density(double* results, const Workspace& w, lqcd_pool* pool) {
  double sums[1];
  sum_sites<1>(pool, w.partials, sums, [&](const Site& x, auto add) {
    for (int p = 0; p < kPlanes; ++p) {
      const L::M f = L::field_strength(w.field, x, kPlane[p][0], kPlane[p][1]);
      add(0, real_trace_times_dagger(f, f));
    }
  });
  results[0] = sums[0] / double(kSites);
}

inline Matrix<double> link_at(const Link* links, int64_t site, int mu) {
  Matrix<double> out;
  const Link* p = links + site * kSiteReals + mu * kLinkReals;
  for (int i = 0; i < 9; ++i) {
    out.re[i] = double(p[2 * i]);
    out.im[i] = double(p[2 * i + 1]);
  }
  return out;
}

// Lines of direction mu are numbered by (outer, inner): sites of one line are `inner_count` apart.
[[maybe_unused]] void polyakov_loop(double* results, const Link* links, double* partials, lqcd_pool* pool) {
  for (int mu = 0; mu < 4; ++mu) {
    int64_t inner_count = 1;
    for (int nu = mu + 1; nu < 4; ++nu) inner_count *= kExtent[nu];
    const int64_t lines = kSites / kExtent[mu];
    double sums[2];
    reduce<2>(pool, lines, kBlock, partials, sums, [&](int64_t first, int64_t last, double(&sum)[2]) {
      for (int64_t line = first; line < last; ++line) {
        const int64_t start = line / inner_count * inner_count * kExtent[mu] + line % inner_count;
        Matrix<double> loop = link_at(links, start, mu);
        for (int k = 1; k < kExtent[mu]; ++k) loop = loop * link_at(links, start + k * inner_count, mu);
        sum[0] += loop.re[0] + loop.re[4] + loop.re[8];
        sum[1] += loop.im[0] + loop.im[4] + loop.im[8];
      }
    });
    for (int part = 0; part < 2; ++part) results[2 * mu + part] = sums[part] / (3.0 * double(lines));
  }
}

}  // namespace
}  // namespace lqcd

uint64_t lqcd_bytes(int32_t what) { return what == lqcd::kWorkspace ? lqcd::L::kBytes + lqcd::kPartialBytes : 0; }

int32_t lqcd_observe(double* results, const void* links, const double* scalars, void* work, lqcd_pool* pool) {
  using namespace lqcd;
  if (!results || !links || !scalars || !work) return kBadArgument;
  const auto* u = static_cast<const Link*>(links);
  const Workspace w = workspace_of(work);
#if defined(LQCD_OPERATOR_polyakov_loop)
  polyakov_loop(results, u, w.partials, pool);
#else
  L::pack(w.field, u, pool);
#if defined(LQCD_OPERATOR_plaquette)
  plaquette(results, w, pool);
#elif defined(LQCD_OPERATOR_wilson_action)
  wilson_action(results, w, scalars[0], pool);
#elif defined(LQCD_OPERATOR_topological_charge)
  topological_charge(results, w, pool);
#elif defined(LQCD_OPERATOR_energy_density)
  energy_density(results, w, pool);
#else
#error "no observable is chosen: define LQCD_OPERATOR_<name>"
#endif
#endif
  return kOk;
}
