// Command crdb_parser reads {"name": "SQL", ...} on stdin and writes those that CockroachDB's own parser refuses, as
// {"name": "complaint", ...}. Syntax only: it knows neither types nor tables.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser"
)

func main() {
	var statements map[string]string
	if err := json.NewDecoder(os.Stdin).Decode(&statements); err != nil {
		log.Fatal(err)
	}
	refused := map[string]string{}
	for name, text := range statements {
		if _, err := parser.Parse(text); err != nil {
			refused[name] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(refused); err != nil {
		log.Fatal(err)
	}
}
