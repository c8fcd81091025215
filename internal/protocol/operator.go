package protocol

// AllowedBin is one entry of the operator's allow-list (§10.2): a bare name or absolute path as packs
// declare it, the absolute path that it means, and what the file was at that moment.
type AllowedBin struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"`
	Dangerous bool      `json:"dangerous,omitempty"` // an interpreter or shell allowed as bin
	Stamp     FileStamp `json:"stamp"`               // zero for a directory
}

// AllowedRead is one path outside the jail that the operator lets one pack read (§10.2).
type AllowedRead struct {
	Pack string `json:"pack"`
	Path string `json:"path"` // as declared, ~ not expanded
}

// AllowedHost is one host that the operator names for a pack with operator_hosts (§10.2).
type AllowedHost struct {
	Pack string `json:"pack"`
	Host string `json:"host"` // host:port
}

// FileStamp is what a file was when it was recorded (§2.4): compared by stat first, by hash only when
// something differs, and always by hash for a file younger than the second of recording.
type FileStamp struct {
	Dev     uint64 `json:"dev"`
	Ino     uint64 `json:"ino"`
	Size    int64  `json:"size"`
	Mode    uint32 `json:"mode"`
	MtimeNS int64  `json:"mtime_ns"`
	CtimeNS int64  `json:"ctime_ns"`
	SHA256  string `json:"sha256"` // hex
	// Young says that the file had changed within a second of recording: stat alone proves nothing.
	Young bool `json:"young,omitempty"`
}
