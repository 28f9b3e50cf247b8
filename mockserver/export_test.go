package mockserver

import "net/http"

// DifferencesForTest says in what two requests differ.
func DifferencesForTest(first, second *http.Request, firstBody, secondBody []byte) string {
	return newImage(first, firstBody).kept().differences(newImage(second, secondBody))
}
