#include "base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

namespace outrider {

Result<Address> ParseAddress(std::string_view text) {
  const auto wrong = [&] { return InvalidArgument(fmt::format("'{}' is not an address of the form host:port", text)); };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  Address address{std::string(text.substr(0, colon)), 0};
  const bool brackets = address.host.front() == '[' && address.host.back() == ']' && address.host.size() > 2;
  if (brackets) address.host = address.host.substr(1, address.host.size() - 2);
  if (!brackets && address.host.find_first_of(":[]") != std::string::npos) return wrong();
  const std::string_view port = text.substr(colon + 1);
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || rest != port.data() + port.size() || address.port < 0 || address.port > 65535) {
    return wrong();
  }
  return address;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1" || host == "[::1]") return true;
  in_addr address{};
  return host.starts_with("127.") && inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

std::vector<std::string> NamesOfThisMachine() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return {};
  const std::string full = name, first = full.substr(0, full.find('.'));
  return {full, first, first + ".local"};
}

}  // namespace outrider
