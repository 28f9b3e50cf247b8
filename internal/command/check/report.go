package check

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/report"
)

// asReport gives the suite's report to the writers of formats, by its JSON form: the contract between the two.
func asReport(rep *conformance.Report) (*report.Report, error) {
	form, err := json.Marshal(rep)
	if err != nil {
		return nil, fmt.Errorf("check: the report cannot be written: %w", err)
	}
	return report.Parse(bytes.NewReader(form))
}
