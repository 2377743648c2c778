package destination

// The methods of Service, all of them given the request's context first:
//
//	Add(ctx, project string, a Addition) (Added, error)
//	List(ctx, project string) ([]Destination, error)
//	Get(ctx, project, id string) (Destination, error)
//	Change(ctx, project, id string, c Change) (Destination, error)
//	Rotate(ctx, project, id string) (Rotated, error)
//	RevokePrevious(ctx, project, id string) error
//	Pause(ctx, project, id string) (Destination, error)
//	Resume(ctx, project, id string) (Resumed, error)
//	Remove(ctx, project, id string) error
//	Redeliver(ctx, key delivery.Key, r Redelivery) (Delivery, error)
//	TryNow(ctx, key delivery.Key) (Delivery, error)
//	SendTest(ctx, project, id string) (delivery.TestSend, error)
//	Test(ctx, project, id, test string) (delivery.TestSend, error)
//	Deliveries(ctx, project string, release int64) ([]Delivery, error)
//	DestinationDeliveries(ctx, project, id string, before int64, limit int) (DeliveryPage, error)
//	Delivery(ctx, key delivery.Key) (Delivery, error)
