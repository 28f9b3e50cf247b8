package check

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/report"
)

// asReport converts the report of the test suite for the writers of formats (package report). It goes by JSON, which both packages document as the form of a report.
func asReport(rep *conformance.Report) (*report.Report, error) {
	form, err := json.Marshal(rep)
	if err != nil {
		return nil, fmt.Errorf("check: the report cannot be written: %w", err)
	}
	return report.Parse(bytes.NewReader(form))
}
