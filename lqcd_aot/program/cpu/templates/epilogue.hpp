// Purpose: what is added to the hop sum of a site: nothing, the diagonal, or the twisted diagonal.
// Owns: constants compiled in or passed (scalars), the forms of an operator, the epilogues. Refuses to know: links and sweeps.
#pragma once

#include "abi.hpp"
#include "spinors.hpp"

namespace lqcd {

enum class Form { kPlain, kAdjoint, kNormal };

#ifdef LQCD_BAKED_MASS
inline double diagonal(const double*) { return 4.0 + (LQCD_BAKED_MASS); }
#else
inline double diagonal(const double* scalars) { return scalars[kDiagonal]; }
#endif
#ifdef LQCD_BAKED_CSW
inline double clover_coefficient(const double*) { return LQCD_BAKED_CSW; }
#else
inline double clover_coefficient(const double* scalars) { return scalars[kCsw]; }
#endif
#ifdef LQCD_BAKED_MU
inline double twist(const double*) { return LQCD_BAKED_MU; }
#else
inline double twist(const double* scalars) { return scalars[kTwist]; }
#endif

struct HopOnly {
  LQCD_INLINE void operator()(Vector (&)[kSpinor], const Coordinates&, int64_t, int) const {}
};

// The spinor of the field `in` (with Halo) at the site that is being computed.
template <int64_t Halo>
LQCD_INLINE const Vector* spinor_at(LoadedSpinor& place, const Vector* in, const Coordinates& c, int rhs) {
  return load_spinor(place, in + position(c.at[0], c.at[1], c.at[2], c.at[3], Halo) * kSiteStride + rhs * kStoredSpinor);
}

// acc + diagonal psi
template <int64_t Halo>
struct AddDiagonal {
  const Vector* in;
  Vector diagonal;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int rhs) const {
    LoadedSpinor place;
    const Vector* psi = spinor_at<Halo>(place, in, c, rhs);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = multiply_add(diagonal, psi[k], acc[k]);
  }
};

// acc + (diagonal + i mu gamma_5) psi
template <int64_t Halo>
struct AddTwisted {
  const Vector* in;
  Vector diagonal, mu;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int rhs) const {
    LoadedSpinor place;
    const Vector* psi = spinor_at<Halo>(place, in, c, rhs);
    LQCD_UNROLL for (int k = 0; k < kSpinor; k += 2) {
      const Vector turn = k < kHalf ? mu : -mu;
      acc[k] = multiply_subtract(turn, psi[k + 1], multiply_add(diagonal, psi[k], acc[k]));
      acc[k + 1] = multiply_add(turn, psi[k], multiply_add(diagonal, psi[k + 1], acc[k + 1]));
    }
  }
};

}  // namespace lqcd
