// FreeWith: lets a std::unique_ptr free what a C library made: std::unique_ptr<X509, FreeWith<X509_free>>.
#pragma once

namespace outrider {

template <auto Function>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};

}  // namespace outrider
