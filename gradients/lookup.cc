// Gradients of the ops of ops/lookup: tables have no gradient.
#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

namespace gradients::lookup {

void Register(GradientRegistry& registry) {
  for (const char* const op : {"AnonymousHashTable",
                               "AnonymousMutableDenseHashTable",
                               "AnonymousMutableHashTable",
                               "AnonymousMutableHashTableOfTensors",
                               "HashTable",
                               "HashTableV2",
                               "InitializeTable",
                               "InitializeTableFromTextFile",
                               "InitializeTableFromTextFileV2",
                               "InitializeTableV2",
                               "LookupTableExport",
                               "LookupTableExportV2",
                               "LookupTableFind",
                               "LookupTableFindV2",
                               "LookupTableImport",
                               "LookupTableImportV2",
                               "LookupTableInsert",
                               "LookupTableInsertV2",
                               "LookupTableRemoveV2",
                               "LookupTableSize",
                               "LookupTableSizeV2",
                               "MutableDenseHashTableV2",
                               "MutableHashTable",
                               "MutableHashTableOfTensors",
                               "MutableHashTableOfTensorsV2",
                               "MutableHashTableV2"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::lookup

}  // namespace gradflow
