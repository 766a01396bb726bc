// The answer to a copy of an object of S3 (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html; docs/outbox.md#s3).
import HTTPTypes

/// A PUT that copies an object. Unlike other uploads it is answered with a document.
package enum CopiedObject {
    package static func isMade(by request: RequestHead) -> Bool {
        request.method == .put && request.fields.value(of: "x-amz-copy-source") != nil
    }

    /// - Parameter etag: a quoted tag.
    package static func document(etag: String, at moment: Timestamp) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <CopyObjectResult><LastModified>\(RFC3339.format(moment))</LastModified><ETag>\(etag)</ETag></CopyObjectResult>
        """
    }
}
