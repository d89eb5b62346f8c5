// Purpose: invert the packed Hermitian 6x6 blocks of a clover term in place.
// Owns: Gauss-Jordan elimination with partial pivoting in float64. Refuses to know: where the blocks come from.
// A singular block gives infinities or NaN, which flow on to the solver.
#pragma once

#include "clover_pack.hpp"

namespace lqcd {

struct Complex {
  double re, im;
};
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline double norm(Complex a) { return a.re * a.re + a.im * a.im; }
inline Complex reciprocal(Complex a) { return {a.re / norm(a), -a.im / norm(a)}; }

LQCD_APART void swap_rows(Complex (&m)[6][12], int i, int j) {
  for (int k = 0; k < 12; ++k) {
    const Complex t = m[i][k];
    m[i][k] = m[j][k];
    m[j][k] = t;
  }
}

// [A | 1] -> [1 | A^-1]
LQCD_APART void eliminate(Complex (&m)[6][12]) {
  for (int column = 0; column < 6; ++column) {
    int pivot = column;
    for (int row = column + 1; row < 6; ++row)
      if (norm(m[row][column]) > norm(m[pivot][column])) pivot = row;
    swap_rows(m, column, pivot);
    const Complex scale = reciprocal(m[column][column]);
    for (int k = 0; k < 12; ++k) m[column][k] = m[column][k] * scale;
    for (int row = 0; row < 6; ++row) {
      if (row == column) continue;
      const Complex f = m[row][column];
      for (int k = 0; k < 12; ++k) m[row][k] = m[row][k] - f * m[column][k];
    }
  }
}

// One lane of one block of 36 entries (clover_term.hpp).
LQCD_APART void invert_block(Doubles* block, int lane) {
  Complex m[6][12] = {};
  for (int row = 0; row < 6; ++row) {
    m[row][row] = {block[row][lane], 0};
    m[row][6 + row] = {1, 0};
    for (int column = 0; column < row; ++column) {
      const Doubles* entry = block + below_diagonal(row, column);
      m[row][column] = {entry[0][lane], entry[1][lane]};
      m[column][row] = {entry[0][lane], -entry[1][lane]};
    }
  }
  eliminate(m);
  for (int row = 0; row < 6; ++row) {
    block[row][lane] = m[row][6 + row].re;
    for (int column = 0; column < row; ++column) {
      Doubles* entry = block + below_diagonal(row, column);
      entry[0][lane] = 0.5 * (m[row][6 + column].re + m[column][6 + row].re);
      entry[1][lane] = 0.5 * (m[row][6 + column].im - m[column][6 + row].im);
    }
  }
}

inline void invert_term(Doubles (&term)[kTerm]) {
  for (int lane = 0; lane < kLanes; ++lane) {
    invert_block(term, lane);
    invert_block(term + kTerm / 2, lane);
  }
}

}  // namespace lqcd
