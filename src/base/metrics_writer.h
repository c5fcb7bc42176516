// MetricsWriter: Prometheus' text format 0.0.4, one metric after the other.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/histogram.h"

namespace outrider {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

class MetricsWriter {
 public:
  template <typename Number>
  void Counter(std::string_view name, std::string_view help, Number value) {
    Head(name, help, "counter");
    fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
  }

  template <typename Number>
  void Gauge(std::string_view name, std::string_view help, Number value) {
    Head(name, help, "gauge");
    fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
  }

  // One counter for each of `items`, distinguished by a label; `sample` gives an item's label and value.
  template <typename Items, typename Sample>
  void CounterBy(std::string_view label, std::string_view name, std::string_view help, const Items& items,
                 Sample sample) {
    Head(name, help, "counter");
    for (const auto& item : items) {
      const auto [value_of_label, value] = sample(item);
      fmt::format_to(std::back_inserter(text_), "{}{{{}=\"{}\"}} {}\n", name, label, value_of_label, value);
    }
  }

  void Distribution(std::string_view name, std::string_view help, const Histogram& histogram) {
    Head(name, help, "histogram");
    uint64_t up_to_bound = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      up_to_bound += histogram.counts()[i];
      fmt::format_to(std::back_inserter(text_), "{}_bucket{{le=\"{}\"}} {}\n", name, histogram.bounds()[i],
                     up_to_bound);
    }
    fmt::format_to(std::back_inserter(text_), "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                   histogram.count(), histogram.sum());
  }

  std::string Take() { return std::move(text_); }

 private:
  void Head(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }

  std::string text_;
};

}  // namespace outrider
