// Purpose: names put together at compile time. Owns: a constant string of bounded length. Refuses to know: what is named.
#pragma once

#include <stdint.h>

namespace lqcd {

struct Text {
  char chars[128] = {};
  int length = 0;

  constexpr Text(const char* s) {
    while (*s) chars[length++] = *s++;
  }
  constexpr Text operator+(const Text& other) const {
    Text out = *this;
    for (int i = 0; i < other.length; ++i) out.chars[out.length++] = other.chars[i];
    return out;
  }
  constexpr Text operator+(const char* s) const { return *this + Text(s); }
  constexpr Text operator+(int64_t n) const {
    if (n >= 10) return (*this + n / 10) + n % 10;
    const char digit[2] = {char('0' + n), 0};
    return *this + Text(digit);
  }
};

}  // namespace lqcd
