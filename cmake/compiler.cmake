# ccache and a fast linker where the machine has them; warnings and sanitizers for our own code.
find_program(OUTRIDER_CCACHE ccache)
if(OUTRIDER_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
endif()

find_program(OUTRIDER_MOLD mold)
find_program(OUTRIDER_LLD ld.lld)
if(OUTRIDER_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(OUTRIDER_LLD)
  add_link_options(-fuse-ld=lld)
endif()

set(OUTRIDER_OWN_FLAGS -Wall -Wextra -Wshadow)
if(OUTRIDER_TESTS)
  list(APPEND OUTRIDER_OWN_FLAGS -Werror)  # for those who change the code; a user's newer compiler may warn of more
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND OUTRIDER_OWN_FLAGS -Wno-restrict)  # g++ 12 sees overlaps in std::string that are not there (GCC bug 105651)
endif()
# Our rooms are instrumented, llama.cpp is not: its heap is watched all the same through malloc, its locks through pthread, and the
# build takes minutes instead of half an hour.
if(OUTRIDER_SANITIZE STREQUAL "address")
  list(APPEND OUTRIDER_OWN_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=address,undefined)
elseif(OUTRIDER_SANITIZE STREQUAL "thread")
  list(APPEND OUTRIDER_OWN_FLAGS -fsanitize=thread -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=thread)
elseif(OUTRIDER_SANITIZE)
  message(FATAL_ERROR "OUTRIDER_SANITIZE is '${OUTRIDER_SANITIZE}'; use address or thread")
endif()
