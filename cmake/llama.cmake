# llama.cpp as a dependency: its libraries through their CMake targets, nothing of it installed or committed. Its tools are
# configured but built only on demand: ggml-rpc-server by the tests, llama-server and llama-quantize by bench/.
if(NOT EXISTS "${OUTRIDER_LLAMA_SOURCE}/include/llama.h")
  message(FATAL_ERROR "no llama.cpp source at '${OUTRIDER_LLAMA_SOURCE}': run ./run or ./test, which fetch the pinned version, "
                      "or pass -DOUTRIDER_LLAMA_SOURCE=/path/to/llama.cpp")
endif()

# Static, but for TSan: it ignores what libraries without its instrumentation do, and knows code by the file it comes from. (Their
# threads synchronise through atomics that it does not see; every copy would be a race to look into and suppress.)
if(OUTRIDER_SANITIZE STREQUAL "thread")
  set(BUILD_SHARED_LIBS ON CACHE BOOL "" FORCE)
else()
  set(BUILD_SHARED_LIBS OFF CACHE BOOL "" FORCE)
endif()
set(GGML_RPC ON CACHE BOOL "" FORCE)
set(LLAMA_BUILD_COMMON ON CACHE BOOL "" FORCE)
set(LLAMA_BUILD_TOOLS ON CACHE BOOL "" FORCE)
set(LLAMA_BUILD_SERVER ON CACHE BOOL "" FORCE)
foreach(unused LLAMA_BUILD_TESTS LLAMA_BUILD_EXAMPLES LLAMA_BUILD_APP LLAMA_BUILD_UI LLAMA_USE_PREBUILT_UI LLAMA_BUILD_IS_DEV
        LLAMA_TOOLS_INSTALL)
  set(${unused} OFF CACHE BOOL "" FORCE)
endforeach()
set(MTMD_VIDEO OFF CACHE BOOL "" FORCE)  # it would run ffmpeg on what clients send
set(LLAMA_OPENSSL ON CACHE BOOL "" FORCE)  # downloads over https
set(GGML_CCACHE OFF CACHE BOOL "" FORCE)  # compiler.cmake has set the launcher
# ggml's own thread pools instead of OpenMP: one per engine, by our choice. libgomp keeps a team for every thread that ever computed,
# and once there are more of its threads than CPUs (a warm-up on another thread is enough, or a draft model) it stops spinning at
# barriers: decoding a small model took 2.5 times as long. Besides, TSan cannot see libgomp's synchronisation.
set(GGML_OPENMP OFF CACHE BOOL "" FORCE)

set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
add_subdirectory("${OUTRIDER_LLAMA_SOURCE}" llama EXCLUDE_FROM_ALL SYSTEM)

# libmtmd has a small file for each kind of projector, all with the same headers. C++20 warns of something in one of these.
set_target_properties(mtmd PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
get_target_property(mtmd_sources mtmd SOURCES)
list(FILTER mtmd_sources EXCLUDE REGEX "^models/")
list(TRANSFORM mtmd_sources PREPEND "${OUTRIDER_LLAMA_SOURCE}/tools/mtmd/")
set_source_files_properties(${mtmd_sources} TARGET_DIRECTORY mtmd PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_compile_options(mtmd PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-enum-enum-conversion>)

# GCC's _tile_loadconfig tells the compiler that it reads 8 of the 64 bytes of a tile configuration, so that GCC 12 drops ggml's stores
# to the others: on a CPU with AMX the first wide product of plain weights then ends in an illegal instruction.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties("${OUTRIDER_LLAMA_SOURCE}/ggml/src/ggml-cpu/amx/mmq.cpp" TARGET_DIRECTORY ggml-cpu
                              PROPERTIES COMPILE_OPTIONS "-fno-tree-dse;-fno-dse")
endif()
