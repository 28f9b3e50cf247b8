package mock

import (
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver/referee"
)

// RefereeReport converts the referee's report on a client for the writers of formats (package report).
func RefereeReport(from *referee.Report) *report.Report {
	to := report.New(report.KindReferee)
	to.Suite, to.Target, to.Profile, to.Seed = from.Suite, from.Target, from.Profile, from.Seed
	to.Started, to.MS, to.Requests, to.Config = from.Started, from.MS, from.Requests, from.Config
	for i := range from.Cases {
		to.Cases = append(to.Cases, refereeCase(&from.Cases[i]))
	}
	to.Summary = report.Summarize(to.Cases)
	return to
}

// refereeCase returns one verdict of the referee as a case of a report. The name of a send becomes the lane of its exchange: the row for it in a drawing.
func refereeCase(from *referee.Case) report.Case {
	to := report.Case{
		ID: from.ID, Level: report.Level(from.Level), Verdict: report.Verdict(from.Verdict), Witness: report.Witness(from.Witness),
		Rule: from.Rule, Impact: from.Impact, Expected: from.Expected, Actual: from.Actual, Reason: from.Reason,
		Exchanges: []report.Exchange{},
	}
	for _, s := range from.Spec {
		to.Spec = append(to.Spec, report.Ref{Name: s.Name, URL: s.URL})
	}
	for _, f := range from.Findings {
		to.Findings = append(to.Findings, report.Finding{Verdict: report.Verdict(f.Verdict), Text: f.Text})
	}
	for _, x := range from.Exchanges {
		to.Exchanges = append(to.Exchanges, report.Exchange{
			At: x.AtMS, Took: x.TookMS, Lane: x.Send, Method: x.Method, URL: x.Path, Key: x.Key, Status: x.Status, Note: x.Note, Error: x.Error,
		})
	}
	return to
}
