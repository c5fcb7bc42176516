// Options of a listening socket.
#pragma once

#include <sys/socket.h>

namespace outrider {

// httplib's default is SO_REUSEPORT, with which a second server of the same user can listen on a port that is in use,
// and the two share the connections. With SO_REUSEADDR it gets an error, and a server that was just ended can still be
// started again at once.
inline void SetListenOptions(int socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace outrider
