# cmake -P wrong_component.cmake DIR: requests a component that does not exist from the gradflow in
# DIR.
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${CMAKE_ARGV3}/wrong_component)
file(WRITE ${CMAKE_ARGV3}/wrong_component/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\nfind_package(gradflow CONFIG REQUIRED COMPONENTS tensorflow)\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_ARGV3}/wrong_component -B
                        ${CMAKE_ARGV3}/wrong_component/build -Dgradflow_DIR=${CMAKE_ARGV3})
