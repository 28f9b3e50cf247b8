package report_test

import (
	"github.com/oncehttp/oncehttp/internal/report"
)

// attacks try to leave every context that a report is written in.
const attacks = "</script><script>window.pwned=1</script>\"'><img src=x onerror=window.pwned=1></style></title>--></pre>" +
	"{{.}}${1}`\\u003cscript>\x1b[31m\x00\x07\u202e]]>&lt;|a|\r\n# h\n@team #1"

// hostile is the sample with that text wherever a server, or a report file,
// can put one.
func hostile(text string) *report.Report {
	r := sample()
	r.Name, r.Target, r.Profile, r.Suite, r.Run = text, text, text, text, text
	r.Config = map[string]string{"a" + text: text}
	for i := range r.Cases {
		c := &r.Cases[i]
		for _, field := range []*string{&c.Rule, &c.Impact, &c.Expected, &c.Actual, &c.Reason, &c.Odds, &c.Effects, &c.Fix} {
			*field = text
		}
		c.Try = []string{text, text}
		c.Spec = []report.Ref{{Name: text, URL: "javascript:window.pwned=1//" + text, Quote: text}, {Name: text, URL: "https://example.com/" + text}}
		c.Findings = []report.Finding{{Verdict: report.Fail, Text: text}}
		for j := range c.Exchanges {
			x := &c.Exchanges[j]
			for _, field := range []*string{&x.Lane, &x.Method, &x.URL, &x.Key, &x.Error, &x.Note, &x.Effects, &x.Caller, &x.Ref} {
				*field = text
			}
			x.Request = report.NewMessage(map[string][]string{"X-" + text: {text}}, []byte(text), 1<<10)
			x.Response = report.NewMessage(map[string][]string{"X-" + text: {text}}, []byte(text), 1<<10)
		}
	}
	return r
}

// betterSample is the sample after its failure was fixed.
func betterSample() *report.Report {
	r := sample()
	r.Name = "fiber v3.2.0"
	r.Cases[0].Verdict = report.Pass
	return r
}
