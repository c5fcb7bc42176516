# outrider_embed(target name file...): makes the bytes of the files, one after the other, a part of the program:
# `std::string_view name()` in namespace outrider, to be declared by whoever uses it.
function(outrider_embed target name)
  set(source ${OUTRIDER_GENERATED}/embedded/${name}.cc)
  set(includes "")
  foreach(file IN LISTS ARGN)
    file(REAL_PATH ${file} path BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    string(APPEND includes "    \".incbin \\\"${path}\\\"\\n\"\n")
    list(APPEND paths ${path})
  endforeach()
  file(CONFIGURE OUTPUT ${source} CONTENT [=[
// Written by cmake/embed.cmake.
#include <string_view>

asm(".section .rodata\n"
    ".balign 16\n"
    "outrider_embedded_@name@_begin:\n"
@includes@    "outrider_embedded_@name@_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" const char outrider_embedded_@name@_begin[], outrider_embedded_@name@_end[];

namespace outrider {

std::string_view @name@();
std::string_view @name@() {
  return {outrider_embedded_@name@_begin, static_cast<size_t>(outrider_embedded_@name@_end - outrider_embedded_@name@_begin)};
}

}  // namespace outrider
]=] @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${paths}")
  target_sources(${target} PRIVATE ${source})
endfunction()
