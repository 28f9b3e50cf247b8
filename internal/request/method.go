package request

import "net/http"

// Method returns the request's method; the empty one means GET, as in net/http.
func Method(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// Safe reports whether a method has no effect (RFC 9110 section 9.2.1). Its requests are never journaled.
func Safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// Idempotent reports whether a method is safe or idempotent by definition (RFC 9110 section 9.2.2).
func Idempotent(method string) bool {
	return Safe(method) || method == http.MethodPut || method == http.MethodDelete || method == http.MethodTrace
}
