package conformance

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed requirements.txt
var requirements string

// Requirement is one rule of the sections 1, 11, 12 and 14 by its number.
type Requirement struct {
	ID    string // HCP-11.1-2a
	Level string // MUST, MUST NOT, SHOULD, MAY, or CLAIM for an item of §14.2 to §14.4
	Text  string // what it demands
}

// Mark is the id as it stands in the name of a test: HCP_11_1_2a.
func (r Requirement) Mark() string { return strings.NewReplacer("-", "_", ".", "_").Replace(r.ID) }

// Requirements are all rules in the order of the specification.
func Requirements() ([]Requirement, error) {
	var all []Requirement
	number := 0
	for line := range strings.Lines(requirements) {
		number++
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 3 {
			return nil, fmt.Errorf("requirements.txt:%d: a rule is id, level and text", number)
		}
		all = append(all, Requirement{ID: columns[0], Level: columns[1], Text: columns[2]})
	}
	return all, nil
}
