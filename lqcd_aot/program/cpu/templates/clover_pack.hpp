// Purpose: the clover term of every site from the links.
// Owns: the four leaves, the field strength, the spin structure, rounding to the artifact's dtype.
// Refuses to know: spinors, csw, and the even-odd use of the term.
//
//   C = i/2 sum_{mu<nu} sigma_{mu nu} F_{mu nu} = -1/2 sum_{mu<nu} gamma_mu gamma_nu F_{mu nu}
//   F = (Q - Q^dag)/8, Q the sum of the four leaves based at x; computed in float64, all lanes of an outer site together
// Boundary phases cancel in every leaf, so the links are those of the gauge field.
#pragma once

#include "clover_term.hpp"

namespace lqcd {

typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));

struct Matrix {
  Doubles re[3][3], im[3][3];
};

// A path of links: each factor is U_mu(x + offset) or its adjoint.
struct Factor {
  int mu;
  bool adjoint;
  int offset[4];
};

struct LinkReader {
  const real* links;
  Coordinates lane[kLanes];

  __attribute__((noinline)) Matrix operator()(const Factor& f) const {
    Matrix m;
    for (int l = 0; l < kLanes; ++l) {
      Coordinates g = lane[l];
      for (int nu = 0; nu < 4; ++nu) g.at[nu] = (g.at[nu] + f.offset[nu] + kExtent[nu]) % kExtent[nu];
      const real* u = links + (global_index(g) * 4 + f.mu) * kLink;
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          const real* entry = f.adjoint ? u + (b * 3 + a) * 2 : u + (a * 3 + b) * 2;
          m.re[a][b][l] = entry[0];
          m.im[a][b][l] = f.adjoint ? -entry[1] : entry[1];
        }
    }
    return m;
  }
};

LQCD_APART void multiply(Matrix& out, const Matrix& x, const Matrix& y) {
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      Doubles re = x.re[a][0] * y.re[0][b], im = x.re[a][0] * y.im[0][b];
      for (int c = 0; c < 3; ++c) {
        if (c > 0) re = multiply_add(x.re[a][c], y.re[c][b], re), im = multiply_add(x.re[a][c], y.im[c][b], im);
        re = multiply_subtract(x.im[a][c], y.im[c][b], re);
        im = multiply_add(x.im[a][c], y.re[c][b], im);
      }
      out.re[a][b] = re;
      out.im[a][b] = im;
    }
}

LQCD_APART void add_path(Matrix& sum, const LinkReader& read, const Factor (&path)[4]) {
  Matrix p = read(path[0]), q;
  for (int i = 1; i < 4; ++i) {
    multiply(q, p, read(path[i]));
    p = q;
  }
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) sum.re[a][b] += p.re[a][b], sum.im[a][b] += p.im[a][b];
}

inline Factor factor(int mu, bool adjoint, int nu_a, int step_a, int nu_b, int step_b) {
  Factor f{mu, adjoint, {0, 0, 0, 0}};
  f.offset[nu_a] += step_a;
  f.offset[nu_b] += step_b;
  return f;
}

// Q_{mu nu}(x): the four leaves, each starting and ending at x, all with the same orientation.
LQCD_APART void leaves(Matrix& q, const LinkReader& read, int m, int n) {
  q = Matrix{};
  const auto u = [=](int mu, bool adjoint, int along_m, int along_n) { return factor(mu, adjoint, m, along_m, n, along_n); };
  add_path(q, read, {u(m, false, 0, 0), u(n, false, 1, 0), u(m, true, 0, 1), u(n, true, 0, 0)});
  add_path(q, read, {u(n, false, 0, 0), u(m, true, -1, 1), u(n, true, -1, 0), u(m, false, -1, 0)});
  add_path(q, read, {u(m, true, -1, 0), u(n, true, -1, -1), u(m, false, -1, -1), u(n, false, 0, -1)});
  add_path(q, read, {u(n, true, 0, -1), u(m, false, 0, -1), u(n, false, 1, -1), u(m, true, 0, 0)});
}

// Adds -1/2 gamma_m gamma_n (Q - Q^dag)/8 to the packed term; -1/16 is a power of two, so no contraction can change a bit.
LQCD_APART void add_plane(Doubles (&term)[kTerm], const Matrix& q, int m, int n) {
  for (int spin = 0; spin < 4; ++spin) {
    const int middle = kColumn[m][spin], column = kColumn[n][middle], power = (kPower[m][spin] + kPower[n][middle]) % 4;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        const int row_index = spin % 2 * 3 + a, column_index = column % 2 * 3 + b;
        if (row_index < column_index) continue;
        const Doubles f_re = (q.re[a][b] - q.re[b][a]) * -0.0625, f_im = (q.im[a][b] + q.im[b][a]) * -0.0625;
        const Doubles re = power == 0 ? f_re : power == 1 ? -f_im : power == 2 ? -f_re : f_im;
        const Doubles im = power == 0 ? f_im : power == 1 ? f_re : power == 2 ? -f_im : -f_re;
        Doubles* block = term + spin / 2 * (kTerm / 2);
        if (row_index == column_index) {
          block[row_index] += re;
        } else {
          block[below_diagonal(row_index, column_index)] += re;
          block[below_diagonal(row_index, column_index) + 1] += im;
        }
      }
  }
}

// Calls finish(term, position in the buffer, parity) with the term in float64 for every outer site, then stores it rounded.
template <class Finish>
void pack_terms(real* packed, const real* links, int64_t slab, lqcd_pool* pool, const Finish& finish) {
  parallel_for(pool, sites_of(kTermHalo), [=, &finish](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site)
      for (int parity = 0; parity < kFields; ++parity) {
        const Coordinates outer = coordinates(site, kTermHalo, parity);
        LinkReader read{links, {}};
        for (int lane = 0; lane < kLanes; ++lane) read.lane[lane] = global(outer, lane, slab);
        Doubles term[kTerm] = {};
        for (int m = 0; m < 4; ++m)
          for (int n = m + 1; n < 4; ++n) {
            Matrix q;
            leaves(q, read, m, n);
            add_plane(term, q, m, n);
          }
        finish(term, parity);
        real* to = packed + (parity * sites_of(kTermHalo) + site) * kTerm * kLanes;
        for (int k = 0; k < kTerm; ++k)
          for (int lane = 0; lane < kLanes; ++lane) to[k * kLanes + lane] = real(term[k][lane]);
      }
  });
}

}  // namespace lqcd
