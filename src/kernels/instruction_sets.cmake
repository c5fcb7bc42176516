# How the room's files are compiled; for src/CMakeLists.txt and tests/arm, which have the target outrider-kernels.

# ggml's internal headers: the plug-in is one of its CPU backend's buffer types.
target_include_directories(outrider-kernels SYSTEM PRIVATE ${OUTRIDER_LLAMA_SOURCE}/ggml/src ${OUTRIDER_LLAMA_SOURCE}/ggml/src/ggml-cpu)

# Kernels run only where the CPU was found to have their instructions. No contraction: which operations a result is made of is theirs to
# say.
set(kernel_flags -O3 -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND kernel_flags -Wno-uninitialized -Wno-maybe-uninitialized)  # g++ 12 warns of its own headers (GCC bug 105593)
endif()

# kernel_instructions(FILE PROCESSORS FLAGS...): FILE is compiled with FLAGS on these processors, and not at all on others.
function(kernel_instructions file processors)
  set(file ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${file})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${processors}")
    set_source_files_properties(${file} TARGET_DIRECTORY outrider-kernels PROPERTIES COMPILE_OPTIONS "${kernel_flags};${ARGN}")
  else()
    set_source_files_properties(${file} TARGET_DIRECTORY outrider-kernels PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endfunction()
kernel_instructions(avx2.cc "x86_64|amd64|AMD64" -mavx2 -mfma -mf16c)
kernel_instructions(avx_vnni.cc "x86_64|amd64|AMD64" -mavx2 -mfma -mf16c -mavxvnni)
kernel_instructions(avx512_vnni.cc "x86_64|amd64|AMD64"
                    -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni)
kernel_instructions(avx512_vnni_256.cc "x86_64|amd64|AMD64" -mavx2 -mfma -mf16c -mavx512vl -mavx512vnni)
kernel_instructions(neon_dotprod.cc "aarch64|arm64" -march=armv8.2-a+dotprod)
