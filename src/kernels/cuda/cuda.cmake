# The kernels for NVIDIA GPUs, for builds with GGML_CUDA.
#
# They run in ggml-cuda's context, so they see its internal headers with its own definitions (some change the layout of the
# context), and are compiled with its flags. The linker leads ggml-cuda's calls of the three functions below to
# __wrap_NAME (hooks.cu), which calls __real_NAME for what our kernels do not cover. If llama.cpp renames one, the link fails.
enable_language(CUDA)
get_directory_property(ggml_cuda_definitions DIRECTORY ${OUTRIDER_LLAMA_SOURCE}/ggml/src/ggml-cuda COMPILE_DEFINITIONS)
get_target_property(ggml_cuda_architectures ggml-cuda CUDA_ARCHITECTURES)

add_library(outrider-device-kernels OBJECT
            ${CMAKE_CURRENT_LIST_DIR}/attention.cu ${CMAKE_CURRENT_LIST_DIR}/hooks.cu ${CMAKE_CURRENT_LIST_DIR}/matmul.cu)
set_target_properties(outrider-device-kernels PROPERTIES CUDA_STANDARD 17 CUDA_EXTENSIONS ON
                      CUDA_ARCHITECTURES "${ggml_cuda_architectures}")
target_compile_definitions(outrider-device-kernels PRIVATE ${ggml_cuda_definitions})
target_compile_options(outrider-device-kernels PRIVATE -use_fast_math -extended-lambda)
target_include_directories(outrider-device-kernels PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(outrider-device-kernels SYSTEM PRIVATE ${OUTRIDER_LLAMA_SOURCE}/ggml/src ${OUTRIDER_LLAMA_SOURCE}/ggml/src/ggml-cuda)
target_link_libraries(outrider-device-kernels PRIVATE ggml)

set(context "R25ggml_backend_cuda_context")
foreach(name
        _Z23ggml_cuda_mul_mat_vec_q${context}PK11ggml_tensorS3_S3_PS1_PK29ggml_cuda_mm_fusion_args_host
        _Z19ggml_cuda_mul_mat_q${context}PK11ggml_tensorS3_S3_PS1_
        _Z24ggml_cuda_flash_attn_ext${context}P11ggml_tensor)
  target_link_options(outrider-kernels INTERFACE "LINKER:--wrap=${name}")
endforeach()
add_dependencies(outrider-kernels outrider-device-kernels)
target_link_libraries(outrider-kernels INTERFACE $<TARGET_OBJECTS:outrider-device-kernels>)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/../no_device_kernels.cc TARGET_DIRECTORY outrider-kernels PROPERTIES HEADER_FILE_ONLY ON)

if(OUTRIDER_TESTS)
  add_executable(device_kernels_test ${CMAKE_CURRENT_LIST_DIR}/device_kernels_test.cc)
  target_link_libraries(device_kernels_test PRIVATE outrider-kernels GTest::gtest_main Threads::Threads)
endif()
