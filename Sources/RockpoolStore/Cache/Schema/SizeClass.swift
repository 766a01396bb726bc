// Classes of entries by size.
import RockpoolCore

/// Size classes, each four times the one below: eviction by bytes × age searches each class by age alone.
enum SizeClass {
    /// Upper bounds in bytes of all classes but the last.
    private static let bounds = (0..<7).map { Int.kib(4) << (2 * $0) }
    static let all = 0...bounds.count
    static var count: Int { all.count }

    /// The class of a row as a SQL expression.
    static let expression =
        "CASE " + bounds.enumerated().map { "WHEN bytes <= \($1) THEN \($0)" }.joined(separator: " ") + " ELSE \(bounds.count) END"
}
