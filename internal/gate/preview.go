package gate

import (
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// PreviewArgs are what a preview gets of the arguments that it is about (§15.3): those that it declares too. Whoever shows a
// preview and whoever runs it again ask here, so that both ask the same.
func PreviewArgs(l *Loaded, preview string, args *jsondoc.Node) (*jsondoc.Node, *protocol.Error) {
	c := l.Manifest.Command(preview)
	if c == nil {
		return nil, notExecutable("preview", "The preview "+l.ID+"/"+preview+" is no command of its pack.")
	}
	schema, err := c.Args()
	if err != nil {
		return nil, notExecutable("preview", "The argument schema of the preview "+l.ID+"/"+preview+" does not compile.")
	}
	var known []jsondoc.Member
	for _, m := range args.Members {
		if schema.Property(m.Key) != nil {
			known = append(known, m)
		}
	}
	return jsondoc.Obj(known...), nil
}
