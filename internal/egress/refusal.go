package egress

// Refusal says why an input of a person was not taken. It holds no part of that input.
type Refusal struct {
	Code    string // stable, for programs: "userinfo", "not-public" …
	Message string // one plain sentence that says what to do
}

func (r *Refusal) Error() string { return r.Message }

func refuse(code, message string) error { return &Refusal{Code: code, Message: message} }
