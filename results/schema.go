package results

import _ "embed"

// SchemaJSON is the JSON Schema (draft 2020-12) of results.json, for tools that read it.
//
//go:embed results.schema.json
var SchemaJSON []byte
