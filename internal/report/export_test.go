package report

// CurlLine is the command line for a request, with its credentials in it.
func CurlLine(method, url string, header map[string][]string, body string) string {
	c := curl{method: method, url: url, header: header, word: shellWord}
	if body != "" {
		c.data = " --data-raw " + shellWord(body)
	}
	return c.line()
}
