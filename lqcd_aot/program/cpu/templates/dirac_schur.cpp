// Purpose: artifact of wilson_schur, wilson_schur_dagger, wilson_schur_normal: S = d - H_eo H_oe / d, d the diagonal.
// Owns: their form and epilogues. Refuses to know: sweeps.
#include "epilogue.hpp"
#include "hop.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_wilson_schur)
inline constexpr Form kForm = Form::kPlain;
#elif defined(LQCD_OPERATOR_wilson_schur_dagger)
inline constexpr Form kForm = Form::kAdjoint;
#elif defined(LQCD_OPERATOR_wilson_schur_normal)
inline constexpr Form kForm = Form::kNormal;
#else
#error "no operator of this family is defined"
#endif
inline constexpr int64_t kCloverBytes = 0;

// d psi - acc / d
struct SubtractScaled {
  const Vector* in;
  Vector diagonal, inverse;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int rhs) const {
    const Vector* psi = spinor_at<0>(in, c, rhs);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = multiply_subtract(inverse, acc[k], diagonal * psi[k]);
  }
};

inline auto odd_epilogue(const Vector*, const double*) { return HopOnly{}; }
inline auto even_epilogue(const Vector* in, const Vector*, const double* scalars) {
  const double d = diagonal(scalars);
  return SubtractScaled{in, broadcast<Vector>(real(d)), broadcast<Vector>(real(1 / d))};
}

}  // namespace lqcd

#include "schur.hpp"

LQCD_SPINOR_ENTRY_POINTS(0, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
