// A shared library of plugin_test.cc that says nothing about gradflow.
extern "C" __attribute__((visibility("default"))) int NoPlugin() { return 0; }
